package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxLabelFile is far more than the names of maxLabels classes need.
const maxLabelFile = 4 << 20

// ReadLabels reads class names from a file: a name a line (.txt, .names and others), with or without its
// id before it, or YAML or JSON (.yaml, .yml, .json) with names as a list or by id, alone or under "names". A byte
// order mark, CRLF and blank lines at the end do no harm.
func ReadLabels(path string) ([]string, error) {
	f, err := regular(path)
	if err != nil {
		return nil, fmt.Errorf("labels %s: %w", path, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxLabelFile+1))
	if err != nil {
		return nil, fmt.Errorf("labels %s: %w", path, reason(err))
	}
	labels, err := parseLabels(content, strings.ToLower(filepath.Ext(path)))
	if err != nil {
		return nil, fmt.Errorf("labels %s: %w", path, err)
	}
	return labels, nil
}

func parseLabels(content []byte, ext string) ([]string, error) {
	if len(content) > maxLabelFile {
		return nil, errors.New("is too large for a file of labels")
	}
	if bytes.HasPrefix(content, []byte{0xff, 0xfe}) || bytes.HasPrefix(content, []byte{0xfe, 0xff}) {
		return nil, errors.New("is UTF-16: save it as UTF-8")
	}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	var labels []string
	var err error
	switch ext {
	case ".yaml", ".yml":
		labels, err = yamlLabels(content)
	case ".json":
		labels, err = jsonLabels(string(content))
	default:
		labels, err = lineLabels(string(content))
	}
	if err == nil {
		err = checkLabels(labels)
	}
	if err != nil {
		return nil, err
	}
	return labels, nil
}

func jsonLabels(text string) ([]string, error) {
	if list, err := parseNames(text); err == nil {
		return list, nil
	}
	return yamlLabels([]byte(text)) // JSON is YAML
}

var numbered = regexp.MustCompile(`^\s*(\d{1,5})\s*[:,\s]\s*(\S.*)$`)

// lineLabels reads a name a line.
func lineLabels(text string) ([]string, error) {
	text = strings.TrimRight(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), " \t\n")
	if text == "" {
		return nil, errors.New("is empty")
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if lines[i] = strings.TrimSpace(l); lines[i] == "" {
			return nil, fmt.Errorf("line %d is blank, and the labels after it would belong to other classes", i+1)
		}
	}
	if byID := numberedLabels(lines); byID != nil {
		return byID, nil
	}
	return lines, nil
}

// numberedLabels reads lines that all begin with rising ids. Ids that are left out get a name of
// their own.
func numberedLabels(lines []string) []string {
	var labels []string
	for _, l := range lines {
		m := numbered.FindStringSubmatch(l)
		if m == nil {
			return nil
		}
		id, err := strconv.Atoi(m[1])
		if err != nil || id < len(labels) || id > maxLabels || len(labels) == 0 && id > 1 {
			return nil
		}
		for len(labels) < id && len(labels) > 0 {
			labels = append(labels, "class "+strconv.Itoa(len(labels)))
		}
		if id == 1 && len(labels) == 0 { // counted from 1
			labels = append(labels, "background")
		}
		labels = append(labels, strings.TrimSpace(m[2]))
	}
	return labels
}

// yamlLabels reads names: as a list or by id, alone or under the key names.
func yamlLabels(content []byte) ([]string, error) {
	var doc any
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return nil, fmt.Errorf("is no YAML: %s", firstLine(err.Error()))
	}
	if m, ok := doc.(map[string]any); ok {
		for _, key := range []string{"names", "labels", "classes"} {
			if v, ok := m[key]; ok {
				return namesOf(v)
			}
		}
	}
	return namesOf(doc)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func namesOf(v any) ([]string, error) {
	switch v := v.(type) {
	case []any:
		var list []string
		for i, e := range v {
			name, ok := plain(e)
			if !ok {
				return nil, fmt.Errorf("label %d is no text", i)
			}
			list = append(list, name)
		}
		return list, nil
	case map[string]any:
		byID := map[int]string{}
		for key, e := range v {
			id, err := strconv.Atoi(key)
			name, ok := plain(e)
			if err != nil || id < 0 || !ok {
				return nil, fmt.Errorf("has no list of names: %q is no class id", clip(key))
			}
			byID[id] = name
		}
		return ordered(byID)
	}
	return nil, errors.New("has no list of names")
}

// plain takes what YAML reads out of a name that stands without quotes.
func plain(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), true
	case map[string]any, []any, nil:
		return "", false
	default:
		return fmt.Sprint(v), true
	}
}

// labels finds the classes' names: those of the configuration, those of the file, or COCO's where the number of
// classes is COCO's.
func (in *inspector) labels() {
	s := &in.rep.Spec
	classes := s.Decode.Classes
	labels, from, certainty, ok := in.namedLabels()
	if !ok {
		return
	}
	if labels == nil {
		in.conventionLabels(classes)
		return
	}
	if rest, background := withoutBackground(labels); background && (s.Decode.FirstID == 1 || len(labels) == classes+1) {
		labels, from = rest, from+", without the background at their head"
	}
	if classes == 0 {
		s.Decode.Classes = len(labels)
	} else if len(labels) != classes && certainty == Stated {
		in.ask("inference.model.labels", fmt.Sprintf("%s gives %d classes, %s lists %s", in.scoresName(), classes, from, plural(len(labels), "label")), "a file of "+plural(classes, "label"), "a list of "+plural(classes, "label"))
		return
	} else if len(labels) != classes {
		in.refuse("%s gives %d classes, %s lists %s", in.scoresName(), classes, from, plural(len(labels), "label"))
		return
	}
	s.Labels = labels
	in.find("labels", fmt.Sprintf("%d, from %s on", len(labels), labels[0]), from, certainty)
}

// namedLabels are those of the configuration or else of the file.
func (in *inspector) namedLabels() (labels []string, from string, c Certainty, ok bool) {
	o := &in.o
	switch {
	case len(o.Labels) > 0 && o.LabelsFile != "":
		in.refuse("inference.model.labels names a file and a list")
		return nil, "", "", false
	case len(o.Labels) > 0:
		if err := checkLabels(o.Labels); err != nil {
			in.refuse("inference.model.labels: %v", err)
			return nil, "", "", false
		}
		return append([]string(nil), o.Labels...), "inference.model.labels", FromConfig, true
	case o.LabelsFile != "":
		labels, err := ReadLabels(o.LabelsFile)
		if err != nil {
			in.refuse("%v", err)
			return nil, "", "", false
		}
		return labels, o.LabelsFile, FromConfig, true
	}
	for _, key := range []string{"names", "labels", "classes", "class_names"} {
		text, has := in.rep.Metadata[key]
		if !has {
			continue
		}
		labels, err := parseNames(text)
		if err != nil {
			in.ask("inference.model.labels", fmt.Sprintf("metadata %s: %v", key, err), "a file of labels", "a list of labels")
			return nil, "", "", false
		}
		return labels, "metadata " + key, Stated, true
	}
	return nil, "", "", true
}

func (in *inspector) conventionLabels(classes int) {
	const key = "inference.model.labels"
	s := &in.rep.Spec
	switch classes {
	case 80:
		s.Labels = coco80()
		in.find("labels", "COCO's 80", "the file names no classes and has 80, as models trained on COCO have", Convention)
	case 90, 91:
		s.Labels = coco91(classes)
		in.find("labels", fmt.Sprintf("COCO's by id, %d", classes), fmt.Sprintf("the file names no classes and has %d, as models trained on COCO's own ids have", classes), Convention)
	case 0:
		in.ask(key, "the file does not say which classes it knows, nor how many", "a file of labels", "a list of labels")
	default:
		in.ask(key, fmt.Sprintf("the file does not name its %s", plural(classes, "class")), "a file of "+plural(classes, "label"), "a list of "+plural(classes, "label"))
	}
}

func plural(n int, word string) string {
	switch {
	case n == 1:
		return "1 " + word
	case word == "class":
		return fmt.Sprintf("%d classes", n)
	}
	return fmt.Sprintf("%d %ss", n, word)
}
