package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// dist holds the built dashboard, or only a placeholder where it was not built.
//
//go:embed all:dist
var dist embed.FS

// hashed matches names that change with the file's content, as the
// dashboard's build makes them: index-BxW3kq_9.js.
var hashed = regexp.MustCompile(`^assets/.+-[A-Za-z0-9_-]{8}\.[a-z0-9.]+$`)

const indexFile = "index.html"

// dashboard serves the built dashboard from memory. A request is looked up by
// its exact name, so that there is no path to climb out of.
type dashboard struct {
	assets map[string]*asset
}

// asset is one file.
type asset struct {
	name        string
	contentType string
	cache       string // Cache-Control
	etag        string // without quotes
	body        []byte
	gzip        []byte // nil where it is not much smaller
}

// builtUI returns the dashboard in the binary.
func builtUI() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("web: " + err.Error()) // "dist" is a valid name: it cannot happen
	}
	return sub
}

// newDashboard reads all files of the built dashboard.
func newDashboard(ui fs.FS) (*dashboard, error) {
	d := &dashboard{assets: make(map[string]*asset)}
	err := fs.WalkDir(ui, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		body, err := fs.ReadFile(ui, name)
		if err != nil {
			return err
		}
		d.assets[name] = newAsset(name, body)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read dashboard: %w", err)
	}
	if d.assets[indexFile] == nil {
		d.assets[indexFile] = newAsset(indexFile, []byte(notBuilt))
	}
	return d, nil
}

// notBuilt is shown where the dashboard was not built into the binary.
const notBuilt = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>edgecam</title></head>
<body>
<h1>The dashboard is not in this binary</h1>
<p>Run <code>make build</code> and start edgecam again. The API works: <a href="/api/v1/system">system</a>,
<a href="/api/v1/cameras">cameras</a>, <a href="/api/v1/openapi.yaml">openapi.yaml</a>.</p>
</body>
</html>
`

func newAsset(name string, body []byte) *asset {
	sum := sha256.Sum256(body)
	a := &asset{
		name: name, body: body, contentType: contentType(name, body), cache: "no-cache",
		etag: base64.RawURLEncoding.EncodeToString(sum[:12]),
	}
	if hashed.MatchString(name) {
		a.cache = "private, max-age=31536000, immutable"
	}
	a.gzip = compress(body, a.contentType)
	return a
}

// contentType does not depend on the machine's MIME tables for what matters.
func contentType(name string, body []byte) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return http.DetectContentType(body)
}

// compress returns body in gzip, or nil where that does not save a tenth.
func compress(body []byte, contentType string) []byte {
	text := strings.HasPrefix(contentType, "text/") || strings.Contains(contentType, "json") || strings.Contains(contentType, "svg")
	if !text || len(body) < 1024 {
		return nil
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(body)
	if err = errors.Join(err, z.Close()); err != nil || out.Len() > len(body)*9/10 {
		return nil // a buffer takes everything: only the size can be the reason
	}
	return out.Bytes()
}

// getDashboard serves a file of the dashboard, or its page for every path that
// looks like one of the dashboard's own views.
func (s *Server) getDashboard(c echo.Context) error {
	name := strings.TrimPrefix(c.Request().URL.Path, "/")
	a := s.dashboard.assets[name]
	if a == nil && isView(name) {
		a = s.dashboard.assets[indexFile]
	}
	if a == nil {
		return errNotFound()
	}
	serveAsset(c, a)
	return nil
}

// isView says whether a path may be a view of the dashboard: no file, and
// nothing that belongs to a program.
func isView(name string) bool {
	first, _, _ := strings.Cut(strings.ToLower(name), "/")
	switch first {
	case "assets", "login", "logout":
		return false
	}
	return path.Ext(name) == "" && !isAPI("/"+name)
}

func serveAsset(c echo.Context, a *asset) {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, a.contentType)
	h.Set(echo.HeaderCacheControl, a.cache)
	etag, body := a.etag, a.body
	if a.gzip != nil {
		h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
		if acceptsGzip(c.Request().Header.Get(echo.HeaderAcceptEncoding)) {
			h.Set(echo.HeaderContentEncoding, "gzip")
			etag, body = etag+"-gzip", a.gzip
		}
	}
	h.Set("ETag", `"`+etag+`"`)
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reads Accept-Encoding: gzip is named and not refused by q=0.
func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(item, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q := strings.ReplaceAll(strings.ToLower(params), " ", "")
		return q != "q=0" && !(strings.HasPrefix(q, "q=0.") && strings.Trim(q[4:], "0") == "")
	}
	return false
}
