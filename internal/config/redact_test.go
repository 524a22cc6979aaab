package config_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"edgecam/internal/config"
)

const hash = "$argon2id$v=19$m=65536,t=3,p=2$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo"

func outline(t *testing.T, text string) *config.Outline {
	t.Helper()
	o, err := config.Examine([]byte(text), "edgecam.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWithoutSecrets(t *testing.T) {
	const out = config.LeftOut
	cases := []struct {
		name, text, want string
		keys             []string
	}{
		{"nothing to hide", "version: 1 # the only one\n", "version: 1 # the only one\n", nil},
		{
			"plain, with comments",
			"# mine\ncameras:\n  gate: # front\n    url: rtsp://192.0.2.1/a # the host\n    username: viewer\n    password: hunter2\n\n    # end\n",
			"# mine\ncameras:\n  gate: # front\n    url: rtsp://192.0.2.1/a # the host\n    username: viewer\n    password: " + out + "\n\n    # end\n",
			[]string{"cameras.gate.password"},
		},
		{"double quotes", `cameras: {gate: {password: "a\"b#c", name: x}}`, `cameras: {gate: {password: "` + out + `", name: x}}`, []string{"cameras.gate.password"}},
		{"single quotes", "cameras: {gate: {password: 'it''s'}} # it's\n", "cameras: {gate: {password: " + "'" + out + "'" + "}} # " + out + "\n", []string{"cameras.gate.password"}},
		{
			"block", "cameras:\n  gate:\n    password: |\n      hunter2\n\n    name: x\n",
			"cameras:\n  gate:\n    password: " + out + "\n\n    name: x\n",
			[]string{"cameras.gate.password"},
		},
		{
			"folded, farther left than its mark", "cameras:\n  gate:\n    password:\n            >-\n      hunter2\n    name: x\n",
			"cameras:\n  gate:\n    password:\n            " + out + "\n    name: x\n",
			[]string{"cameras.gate.password"},
		},
		{
			"over several lines", "cameras:\n  gate:\n    password: hunter2\n      hunter3\n    name: \"a\n      b\"\n",
			"cameras:\n  gate:\n    password: " + out + "\n    name: \"a\n      b\"\n",
			[]string{"cameras.gate.password"},
		},
		{"a number", "cameras: {gate: {password: 0123}}", "cameras: {gate: {password: " + out + "}}", []string{"cameras.gate.password"}},
		{"not ascii before it", "cameras: {küche: {name: Küche, password: gehéim}}\n", "cameras: {küche: {name: Küche, password: " + out + "}}\n", []string{"cameras.küche.password"}},
		{"references", "cameras: {gate: {password: '${PW}', url: {file: url.txt}}}\n", "cameras: {gate: {password: '${PW}', url: {file: url.txt}}}\n", nil},
		{"half a reference", "cameras: {gate: {password: '${PW}x'}}\n", "cameras: {gate: {password: '" + out + "'}}\n", []string{"cameras.gate.password"}},
		{
			"login in a url", "cameras:\n  gate: {url: 'rtsp://viewer:hunter2@192.0.2.1:554/a?b=c'}\n",
			"cameras:\n  gate: {url: 'rtsp://viewer:" + out + "@192.0.2.1:554/a?b=c'}\n",
			[]string{"cameras.gate.url"},
		},
		{"password with every delimiter", `{cameras: {gate: {url: "rtsp://v:a/b@c:d@192.0.2.1/a"}}}`, `{cameras: {gate: {url: "rtsp://v:` + out + `@192.0.2.1/a"}}}`, []string{"cameras.gate.url"}},
		{"user alone", "{cameras: {gate: {url: rtsp://viewer@192.0.2.1/a}}}", "{cameras: {gate: {url: rtsp://viewer@192.0.2.1/a}}}", nil},
		{"variable in a url", "{cameras: {gate: {url: 'rtsp://v:${PW}@192.0.2.1/a'}}}", "{cameras: {gate: {url: 'rtsp://v:${PW}@192.0.2.1/a'}}}", nil},
		{"login in a path", "{cameras: {gate: {url: 'rtsp://192.0.2.1/user=admin_password=tlJwpbo6_channel=1'}}}", "{cameras: {gate: {url: 'rtsp://192.0.2.1/" + out + "'}}}", []string{"cameras.gate.url"}},
		{"hash", "server:\n  auth:\n    user: admin\n    password_hash: " + hash + "\n", "server:\n  auth:\n    user: admin\n    password_hash: " + out + "\n", []string{"server.auth.password_hash"}},
		{
			"anchor and alias", "cameras:\n  gate: &gate\n    password: &pw hunter2 \n  yard: {password: *pw}\n  shed:\n    <<: *gate\n    name: x\n",
			"cameras:\n  gate: &gate\n    password: &pw " + out + " \n  yard: {password: *pw}\n  shed:\n    <<: *gate\n    name: x\n",
			[]string{"cameras.gate.password", "cameras.yard.password", "cameras.shed.password"},
		},
		{"alias of what is none", "cameras: {gate: {name: &n hunter2, password: *n}}\n", "cameras: {gate: {name: &n " + out + ", password: *n}}\n", []string{"cameras.gate.name", "cameras.gate.password"}},
		{"misspelt key", "cameras: {gate: {pasword: hunter2, model: {a: hunter3}}}\n", "cameras: {gate: {pasword: " + out + ", model: {a: " + out + "}}}\n", []string{"cameras.gate.pasword", "cameras.gate.model.a"}},
		{"key that stands twice", "cameras: {gate: {password: hunter2, password: hunter3}}\n", "cameras: {gate: {password: " + out + ", password: " + out + "}}\n", []string{"cameras.gate.password"}},
		{"list in place of a text", "cameras: {gate: {password: [hunter2, hunter3]}}\n", "cameras: {gate: {password: [" + out + ", " + out + "]}}\n", []string{"cameras.gate.password"}},
		{"blank missing after the colon", "cameras:\n  gate:\n    url:rtsp://v:hunter2@192.0.2.1/a\n", "cameras:\n  gate:\n    " + out + "\n", []string{"cameras.gate"}},
		{"two documents", "version: 1\n---\ncameras: {gate: {password: hunter2}}\n", "", nil},
		{
			"comments", "# was: rtsp://v:hunter1@192.0.2.1/\nversion: 1\n#    password: hunter0 x\n# Password=foo\n#  password_hash: " + hash + "\n# and hunter2 too\n#  password: \"\"\n# password: {file: x}\ncameras: {gate: {password: hunter2}} # hunter2\n",
			"# was: rtsp://v:" + out + "@192.0.2.1/\nversion: 1\n#    password: " + out + "\n# Password=" + out + "\n#  password_hash: " + out + "\n# and " + out + " too\n#  password: \"\"\n# password: {file: x}\ncameras: {gate: {password: " + out + "}} # " + out + "\n",
			[]string{"cameras.gate.password"},
		},
		{"windows", "\xef\xbb\xbfversion: 1 # a\r\ncameras:\r\n  gate:\r\n    password: \"x\"\r\n", "\xef\xbb\xbfversion: 1 # a\r\ncameras:\r\n  gate:\r\n    password: \"" + out + "\"\r\n", []string{"cameras.gate.password"}},
		{
			"tabs", "cameras:\n  a:\n    password:\t'hunter2'\t# hunter2\n    url:\t\trtsp://u:hunter1@h/x\t\n  b:\n    password: \"a\tb\" # a\tb\n",
			"cameras:\n  a:\n    password:\t'" + out + "'\t# " + out + "\n    url:\t\trtsp://u:" + out + "@h/x\t\n  b:\n    password: \"" + out + "\" # a\tb\n",
			[]string{"cameras.a.password", "cameras.a.url", "cameras.b.password"},
		},
		{
			"comments on cameras that are gone",
			"#  url: rtsp://me@example.com:hunter1@192.0.2.1/a\n#  url: rtsp://192.0.2.1/axis?auth=hunter2\n# pw: hunter3\n# see rtsp://192.0.2.1/a?b=c\nversion: 1\n",
			"#  url: rtsp://me@example.com:" + out + "@192.0.2.1/a\n#  url: rtsp://192.0.2.1/" + out + "\n# pw: " + out + "\n# see rtsp://192.0.2.1/a?b=c\nversion: 1\n", nil,
		},
		{
			"a comment with the password as it is typed", "cameras: {gate: {url: 'rtsp://v:hun%40ter@192.0.2.1/a'}} # hun@ter\n",
			"cameras: {gate: {url: 'rtsp://v:" + out + "@192.0.2.1/a'}} # " + out + "\n",
			[]string{"cameras.gate.url"},
		},
		{
			"logins in queries of many makers", "cameras: {a: {url: 'rtsp://h/x?usr=v&psw=y'}, b: {url: 'rtsp://h/u=v/p=y/ch0'}, c: {url: 'rtsp://h/x?sid=y'}, d: {url: 'rtsp://h/x?step=1'}}\n",
			"cameras: {a: {url: 'rtsp://h/" + out + "'}, b: {url: 'rtsp://h/" + out + "'}, c: {url: 'rtsp://h/" + out + "'}, d: {url: 'rtsp://h/x?step=1'}}\n",
			[]string{"cameras.a.url", "cameras.b.url", "cameras.c.url"},
		},
		{"null", "cameras: {gate: {password: , url: ~}}\n", "cameras: {gate: {password: , url: ~}}\n", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				if _, err := config.Examine([]byte(c.text), "edgecam.yaml"); err == nil {
					t.Error("no error")
				}
				return
			}
			text, keys, err := outline(t, c.text).WithoutSecrets()
			if err != nil {
				t.Fatal(err)
			}
			if string(text) != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
			if !slices.Equal(keys, c.keys) {
				t.Errorf("keys %q, want %q", keys, c.keys)
			}
			again, more, err := outline(t, string(text)).WithoutSecrets()
			if err != nil || string(again) != string(text) || len(more) > 0 {
				t.Errorf("not the same when done twice: %v, %q\n%s", err, more, again)
			}
		})
	}
}

func TestReferenceHasNoSecrets(t *testing.T) {
	text, keys, err := outline(t, string(config.Reference())).WithoutSecrets()
	if err != nil || len(keys) > 0 || string(text) != string(config.Reference()) {
		t.Errorf("%v, %q, changed: %v", err, keys, string(text) != string(config.Reference()))
	}
}

func TestLeftOutIsExplained(t *testing.T) {
	text, _, err := outline(t, "version: 1\nserver:\n  auth: {user: admin, password_hash: x}\ncameras:\n  gate: {url: 'rtsp://v:x@192.0.2.1/'}\n  yard:\n    url: rtsp://192.0.2.1/\n    username: v\n    password: x\n").WithoutSecrets()
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.Parse(text, "edgecam.yaml", config.Options{})
	const says = "this secret was left out of the backup that the file comes from: fill it in"
	want := "edgecam.yaml:3:38: server.auth.password_hash: " + says + "\nedgecam.yaml:5:15: cameras.gate.url: " + says + "\nedgecam.yaml:9:15: cameras.yard.password: " + says
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestFillIn(t *testing.T) {
	const out = config.LeftOut
	cases := []struct {
		name, text, present, want string
		kept, missing             []string
	}{
		{"nothing there", "cameras: {gate: {password: " + out + "}}\n", "", "cameras: {gate: {password: " + out + "}}\n", nil, []string{"cameras.gate.password"}},
		{"same key", "cameras: {gate: {password: " + out + "}} # x\n", "cameras:\n  gate:\n    password: \"a'\\t#\"\n", "cameras: {gate: {password: \"a'\\u0009#\"}} # x\n", []string{"cameras.gate.password"}, nil},
		{"in its quotes", "cameras: {gate: {password: '" + out + "'}}\n", "cameras: {gate: {password: it's}}\n", "cameras: {gate: {password: 'it''s'}}\n", []string{"cameras.gate.password"}, nil},
		{"another camera's", "cameras: {gate: {password: " + out + "}}\n", "cameras: {yard: {password: a}}\n", "cameras: {gate: {password: " + out + "}}\n", nil, []string{"cameras.gate.password"}},
		{"file there", "cameras: {gate: {password: " + out + "}}\n", "cameras: {gate: {password: {file: pw}}}\n", "cameras: {gate: {password: {file: 'pw'}}}\n", []string{"cameras.gate.password"}, nil},
		{"variable there", "cameras: {gate: {password: " + out + "}}\n", "cameras: {gate: {password: '${PW}'}}\n", "cameras: {gate: {password: '${PW}'}}\n", []string{"cameras.gate.password"}, nil},
		{"same url", "cameras: {gate: {url: 'rtsp://v:" + out + "@192.0.2.1/a'}}\n", "cameras: {gate: {url: rtsp://v:x@192.0.2.1/a}}\n", "cameras: {gate: {url: 'rtsp://v:x@192.0.2.1/a'}}\n", []string{"cameras.gate.url"}, nil},
		{"moved camera", "cameras: {gate: {url: 'rtsp://v:" + out + "@192.0.2.1/a'}}\n", "cameras: {gate: {url: rtsp://v:x@y@192.0.2.9/b}}\n", "cameras: {gate: {url: 'rtsp://v:x@y@192.0.2.1/a'}}\n", []string{"cameras.gate.url"}, nil},
		{"another user", "cameras: {gate: {url: 'rtsp://v:" + out + "@192.0.2.1/a'}}\n", "cameras: {gate: {url: rtsp://w:x@192.0.2.1/a}}\n", "cameras: {gate: {url: 'rtsp://v:" + out + "@192.0.2.1/a'}}\n", nil, []string{"cameras.gate.url"}},
		{"secret path", "cameras: {gate: {url: 'rtsp://192.0.2.1/" + out + "'}}\n", "cameras: {gate: {url: 'rtsp://192.0.2.1/password=x'}}\n", "cameras: {gate: {url: 'rtsp://192.0.2.1/password=x'}}\n", []string{"cameras.gate.url"}, nil},
		{"left out there, too", "cameras: {gate: {password: " + out + "}}\n", "cameras: {gate: {password: " + out + "}}\n", "cameras: {gate: {password: " + out + "}}\n", nil, []string{"cameras.gate.password"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var present *config.Outline
			if c.present != "" {
				present = outline(t, c.present)
			}
			text, kept, missing, err := outline(t, c.text).FillIn(present)
			if err != nil || string(text) != c.want || !slices.Equal(kept, c.kept) || !slices.Equal(missing, c.missing) {
				t.Errorf("%v, kept %q, missing %q, got\n%s\nwant\n%s", err, kept, missing, text, c.want)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	o := outline(t, `
inference:
  model: {file: a.onnx, labels: /l/a.txt}
  models:
    b: "${M}/b.onnx"
    c: {file: builtin:nanodet-g, labels: [x, y]}
    d: {file: "${NONE}/d.onnx"}
  library: libonnxruntime.so
cameras:
  gate: {url: {file: url}, password: {file: /s/pw}, tls: {ca: ca.pem}, name: a.onnx}
`)
	var got []string
	for _, r := range o.Files("/etc/edgecam/edgecam.yaml", []string{"M=/m"}) {
		text := r.Key + " " + r.Path
		if r.Secret {
			text += " secret"
		}
		if r.Err != nil {
			text += r.Err.Error()
		}
		got = append(got, text)
	}
	want := []string{
		"inference.model.file /etc/edgecam/a.onnx", "inference.model.labels /l/a.txt", "inference.models.b /m/b.onnx",
		"inference.models.d.file environment variable NONE is not set",
		"cameras.gate.url /etc/edgecam/url secret", "cameras.gate.password /s/pw secret", "cameras.gate.tls.ca /etc/edgecam/ca.pem",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A backup gives back what it was made of, where the secrets are still there.
func FuzzWithoutSecrets(f *testing.F) {
	f.Add([]byte("cameras:\n  gate: &g\n    password: \"a\\\"b\"\n    url: rtsp://v:w@192.0.2.1/a # x\n  b: {<<: *g, password: |\n     x\n    }\n"))
	f.Add([]byte("cameras: {g: {url: 'rtsp://1.2.3.4/a', username: v, password: 'it''s'}}\r\n# password: x\r\n"))
	f.Add([]byte("cameras:\n  g:\n    url:\t'rtsp://v:w@h/a'\t # x\n    username: v\n    password:\tx\t\n  \"k\":\t{'url':\t\t\"rtsp://h/\", username: \t v, password:\tx \t y}\t# c\t\n"))
	names, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range names {
		if b, err := os.ReadFile("testdata/" + n.Name()); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := config.Examine(data, "x.yaml")
		if err != nil {
			return
		}
		text, _, err := o.WithoutSecrets()
		if err != nil {
			return
		}
		before, err := config.Parse(data, "x.yaml", config.Options{})
		if err != nil || strings.Contains(string(data), config.LeftOut) {
			return
		}
		bare, _ := config.Parse(text, "x.yaml", config.Options{})
		if bare != nil {
			for id, c := range bare.Cameras {
				if p := c.Password.Reveal(); p != "" {
					t.Errorf("camera %s: a password is left: %q of %q\n%s", id, p, data, text)
				}
			}
		}
		masked, err := config.Examine(text, "x.yaml")
		if err != nil {
			t.Fatal(err)
		}
		full, _, missing, err := masked.FillIn(o)
		if err != nil || len(missing) > 0 {
			t.Fatalf("%v, missing %q\n%q\n%q", err, missing, data, text)
		}
		after, err := config.Parse(full, "x.yaml", config.Options{})
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%v: before\n%q\nafter\n%q", err, data, full)
		}
	})
}
