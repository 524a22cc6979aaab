package model_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edgecam/infer/model"
	"edgecam/infer/model/fixture"
)

func TestReadLabels(t *testing.T) {
	three := []string{"person", "traffic light", "dog's bowl"}
	tests := []struct {
		name, file, content string
		want                []string
		err                 string
	}{
		{"lines", "a.txt", "person\ntraffic light\ndog's bowl", three, ""},
		{"blank last lines", "a.txt", "person\ntraffic light\ndog's bowl\n\n \n", three, ""},
		{"CRLF and a byte order mark", "coco.names", "\xef\xbb\xbfperson\r\ntraffic light\r\ndog's bowl\r\n", three, ""},
		{"old Mac lines", "a.txt", "person\rtraffic light\rdog's bowl\r", three, ""},
		{"with ids", "a.txt", "0 person\n1 traffic light\n2 dog's bowl\n", three, ""},
		{"with ids and colons", "a.txt", "0: person\n1: traffic light\n2: dog's bowl\n", three, ""},
		{"ids with a gap", "a.txt", "0 person\n3 cat\n", []string{"person", "class 1", "class 2", "cat"}, ""},
		{"ids from 1", "a.txt", "1 person\n2 cat\n", []string{"background", "person", "cat"}, ""},
		{"numbers that are names", "a.txt", "747 jet\n320 jet\n", []string{"747 jet", "320 jet"}, ""},
		{"no extension", "labels", "person\ncat\n", []string{"person", "cat"}, ""},
		{"YAML list", "a.yaml", "names: [person, 'traffic light', \"dog's bowl\"]\n", three, ""},
		{"YAML by id", "data.yml", "path: ../coco\nnc: 3\nnames:\n  0: person\n  2: dog's bowl\n  1: traffic light\n", three, ""},
		{"YAML alone", "a.yaml", "- person\n- yes\n- 42\n", []string{"person", "yes", "42"}, ""},
		{"YAML with a gap", "a.yaml", "names: {0: a, 2: b}", nil, "has 2 names but none for class 1"},
		{"JSON list", "a.json", `["person","traffic light","dog's bowl"]`, three, ""},
		{"JSON by id", "a.json", `{"1":"cat","0":"person"}`, []string{"person", "cat"}, ""},
		{"blank line between", "a.txt", "person\n\ncat\n", nil, "line 2 is blank, and the labels after it would belong to other classes"},
		{"empty", "a.txt", "\n\n", nil, "is empty"},
		{"UTF-16", "a.txt", "\xff\xfep\x00", nil, "is UTF-16: save it as UTF-8"},
		{"binary", "a.txt", "person\n\x01\x02\n", nil, "holds characters that are no text"},
		{"not YAML", "a.yaml", "names: [a, b", nil, "is no YAML"},
		{"YAML without names", "a.yaml", "nc: 80\n", nil, "has no list of names"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := model.ReadLabels(path)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), path) {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// TestNamesInMetadata wants what exporters write to be read as they mean it.
func TestNamesInMetadata(t *testing.T) {
	tests := []struct {
		names, want, err string
	}{
		{`{0: 'person', 1: 'car'}`, "person|car", ""},
		{`{1: "car", 0: "it's"}`, "it's|car", ""},
		{`{0: 'a, b: c', 1: 'x\'y'}`, `a, b: c|x'y`, ""},
		{`{0: 'caf\xe9', 1: 'na\u00efve'}`, "café|naïve", ""},
		{`["person", "\ud83d\ude00"]`, "person|😀", ""},
		{`{"0":"person","1":"car"}`, "person|car", ""},
		{`['person', 'car']`, "person|car", ""},
		{`('person', 'car',)`, "person|car", ""},
		{`[person, car]`, "person|car", ""},
		{"person\ncar", "person|car", ""},
		{"person,car", "person|car", ""},
		{`{0: 'person', 1: 'car'`, "", "is cut off after 2 names"},
		{`{0: 'person', 0: 'car'}`, "", "has class 0 twice"},
		{`{0: 'person', 'x': 'car'}`, "", `has the class id "x"`},
		{`{0: 'person' 1: 'car'}`, "", "unexpected"},
		{`{0: 'person', 1: ''}`, "", "label 1 is empty"},
		{`{0: ['person'], 1: 'car'}`, "", "unexpected"},
		{`[]`, "", "holds 0 labels"},
		{`person`, "", "no list of names"},
	}
	for _, tt := range tests {
		t.Run(tt.names, func(t *testing.T) {
			d := fixture.Detector{Family: "yolov8", Classes: 2, Meta: map[string]string{"names": tt.names}}
			r, err := model.Inspect(write(t, d.Bytes()), model.Overrides{})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), "metadata names: ") || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Spec.Labels, "|"); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestLabelsAndClasses wants names that do not fit the classes to be refused with both numbers.
func TestLabelsAndClasses(t *testing.T) {
	file := func(n int) string {
		path := filepath.Join(t.TempDir(), "labels.txt")
		if err := os.WriteFile(path, []byte(strings.Join(labels(n), "\r\n")+"\r\n\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		family string
		count  int
		err    string
	}{
		{"yolov8", 80, ""},
		{"yolov8", 8, "gives 80 classes, "},
		{"nanodet/heads", 81, "gives 80 classes, "},
		{"ssd-priors", 80, ""},
		{"efficientnms", 79, "gives 80 classes, "},
		{"yolov10", 7, ""}, // nothing in the file speaks against it
	}
	for _, tt := range tests {
		path := file(tt.count)
		r, err := model.Inspect(write(t, fixture.Detector{Family: tt.family}.Bytes()), model.Overrides{LabelsFile: path})
		if tt.err == "" {
			if err != nil || len(r.Spec.Labels) != tt.count || r.Spec.Decode.Classes != tt.count {
				t.Errorf("%s with %d labels: %v", tt.family, tt.count, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.err+path+" lists "+strings.TrimPrefix(labels(tt.count + 1)[tt.count], "class ")+" labels") {
			t.Errorf("%s with %d labels: %v", tt.family, tt.count, err)
		}
	}
	var withBackground model.Overrides
	withBackground.Labels = append([]string{"background"}, labels(80)...)
	for _, family := range []string{"ssd-priors", "ssd-tf", "ssd-torchvision"} {
		r, err := model.Inspect(write(t, fixture.Detector{Family: family}.Bytes()), withBackground)
		if err != nil || len(r.Spec.Labels) != 80 || r.Spec.Labels[0] != "class 0" {
			t.Errorf("%s with a background: %v", family, err)
		}
	}
}
