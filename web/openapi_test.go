package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"edgecam/web"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	l := openapi3.NewLoader()
	doc, err := l.LoadFromData(web.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(l.Context); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Every route is described and everything described is a route.
func TestOpenAPIMatchesRoutes(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	var routes, described []string
	for _, r := range s.RouteList() {
		// The dashboard is for people; HEAD is said once, for all GET routes.
		if !strings.HasSuffix(r, " /") && !strings.HasPrefix(r, "HEAD ") {
			routes = append(routes, r)
		}
	}
	for path, item := range document(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(described)
	if !slices.Equal(routes, described) {
		t.Errorf("routes and document differ\nroutes    %v\ndescribed %v", routes, described)
	}
}

// schemaOf returns the schema of an answer in JSON.
func schemaOf(t *testing.T, doc *openapi3.T, method, path string, status int) *openapi3.Schema {
	t.Helper()
	op := doc.Paths.Value(path).GetOperation(method)
	if op == nil {
		t.Fatalf("%s %s is not described", method, path)
	}
	resp := op.Responses.Status(status)
	if resp == nil {
		resp = op.Responses.Default()
	}
	media := resp.Value.Content.Get("application/json")
	if media == nil {
		t.Fatalf("%s %s answers no JSON with %d", method, path, status)
	}
	return media.Schema.Value
}

func validate(t *testing.T, schema *openapi3.Schema, body string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if err := schema.VisitJSON(v, openapi3.EnableFormatValidation(), openapi3.MultiErrors()); err != nil {
		t.Errorf("%v\nbody %s", err, body)
	}
}

// What the server answers fits the schemas, at the extremes too.
func TestAnswersFitOpenAPI(t *testing.T) {
	doc := document(t)
	full := newBackend()
	empty := newBackend()
	empty.notReady = "no camera is live"
	empty.cameras = []web.Camera{{ID: "gate", State: "disabled"}}
	empty.system = web.System{Platform: web.Platform{Kind: "jetson", Jetson: &web.Jetson{Model: "NVIDIA Jetson AGX Orin Developer Kit", PowerMode: "MAXN"}}, Memory: web.Memory{Strategy: "shared"}}
	broken := newBackend()
	broken.system.Inference.FPS = nan
	broken.system.Inference.RunMS = &web.Percentiles{P50: nan}
	broken.cameras[0].FPS = -inf
	broken.cameras[0].AgeMS.P99 = inf
	broken.cameras[0].StagesMS.Decoded.P50 = nan

	requests := []struct {
		method, path, described string
		status                  map[string]int // by backend; 200 where it is not named
	}{
		{"GET", "/healthz", "/healthz", nil},
		{"GET", "/readyz", "/readyz", map[string]int{"empty": 503}},
		{"GET", "/api/v1/system", "/api/v1/system", nil},
		{"GET", "/api/v1/cameras", "/api/v1/cameras", nil},
		{"GET", "/api/v1/cameras/gate", "/api/v1/cameras/{id}", nil},
		{"GET", "/api/v1/cameras/nobody", "/api/v1/cameras/{id}", map[string]int{"": 404}},
		{"GET", "/api/v1/models", "/api/v1/models", nil},
		{"GET", "/api/v1/models/default", "/api/v1/models/{id}", nil},
		{"GET", "/api/v1/models/plates", "/api/v1/models/{id}", map[string]int{"": 404}},
		{"GET", "/api/v1/models/none", "/api/v1/models/{id}", map[string]int{"": 404}},
		{"GET", "/api/v1/models/default/preview.jpg?camera=gate&iou=0.7", "/api/v1/models/{id}/preview.jpg", map[string]int{"": 400}},
		{"POST", "/api/v1/cameras/gate/whep", "/api/v1/cameras/{id}/whep", map[string]int{"": 501}},
		{"POST", "/api/v1/cameras/nobody/whep", "/api/v1/cameras/{id}/whep", map[string]int{"": 404}},
	}
	for name, b := range map[string]*backend{"full": full, "empty": empty, "broken": broken} {
		s := serve(t, web.Options{Backend: b, Version: "1.2.3"}, web.Timing{})
		for _, r := range requests {
			t.Run(fmt.Sprintf("%s/%s %s", name, r.method, r.path), func(t *testing.T) {
				resp, body := s.do(s.request(r.method, r.path, nil))
				want := http.StatusOK
				if st, ok := r.status[name]; ok {
					want = st
				} else if st, ok := r.status[""]; ok {
					want = st
				}
				if resp.StatusCode != want {
					t.Fatalf("%s, want %d: %s", resp.Status, want, body)
				}
				validate(t, schemaOf(t, doc, r.method, r.described, want), body)
			})
		}
	}
}

func TestDetectionFitsOpenAPI(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	e := s.events("")
	b.Publish(detection("gate", 1))
	_, data, _ := strings.Cut(e.block(), "\ndata: ")
	validate(t, document(t).Components.Schemas["Detection"].Value, data)
}

// The schemas can fail: a test of answers is worth nothing if they take anything.
func TestSchemasRefuse(t *testing.T) {
	doc := document(t)
	for schema, bodies := range map[string][]string{
		"Camera":    {`{}`, `{"id":"gate"}`},
		"Detection": {`{"camera":"GATE"}`, fmt.Sprintf(detectionJSON, "gate", 0), strings.Replace(fmt.Sprintf(detectionJSON, "gate", 1), "0.25", "1.25", 1)},
		"Error":     {`{"error":"text"}`, `{"error":{"code":"Not A Code","message":""}}`},
	} {
		for _, body := range bodies {
			var v any
			if err := json.Unmarshal([]byte(body), &v); err != nil {
				t.Fatal(err)
			}
			if doc.Components.Schemas[schema].Value.VisitJSON(v) == nil {
				t.Errorf("%s takes %s", schema, body)
			}
		}
	}
}

func TestOpenAPIIsServed(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	resp, body := s.get("/api/v1/openapi.yaml")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/yaml" || body != string(web.OpenAPI) {
		t.Errorf("%s, %s, %d bytes, want the document", resp.Status, resp.Header.Get("Content-Type"), len(body))
	}
}
