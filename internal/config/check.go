package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	builtin   = "builtin:"
	maxName   = 200 // characters
	maxListen = 255
)

var (
	idPattern      = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)
	devicePattern  = regexp.MustCompile(`^(auto|all|[0-9]{1,3}|(GPU|MIG)-[0-9A-Za-z/-]{1,100})$`)
	decoderPattern = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)
	phcPattern     = regexp.MustCompile(`^\$argon2id\$v=19\$m=([0-9]{1,7}),t=([0-9]{1,3}),p=([0-9]{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$`)
)

// check reports everything that is well-formed and still wrong.
func (d *decoder) check(c *Config, o Options) {
	if c.Version != 1 {
		d.failAt("version", "", fmt.Errorf("want 1, the only version that there is, not %d", c.Version))
	}
	d.checkServer(&c.Server)
	d.oneOf("gpu.mode", c.GPU.Mode, "auto", "require", "off")
	d.oneOf("gpu.memory", c.GPU.Memory, "auto", "mapped", "staged", "device", "heap")
	if !devicePattern.MatchString(c.GPU.Device) {
		d.failAt("gpu.device", c.GPU.Device, errors.New("want auto, all, a number from 0, or a UUID like GPU-… or MIG-…"))
	}
	d.checkInference(&c.Inference)
	labels := d.checkModels(&c.Inference, o)
	if c.Memory.Limit < 0 || c.Memory.Limit > 0 && c.Memory.Limit < 1<<20 {
		d.failAt("memory.limit", c.Memory.Limit.String(), errors.New("want 0 or at least 1MiB"))
	}
	if !(c.Memory.Share > 0 && c.Memory.Share <= 1) {
		d.failAt("memory.share", number(c.Memory.Share), errors.New("want more than 0, at most 1"))
	}
	d.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	d.oneOf("log.format", c.Log.Format, "text", "json")
	for id, cam := range c.Cameras {
		d.checkCamera("cameras."+id, &cam, o.CheckURL)
		d.checkCameraModel("cameras."+id, &cam, &c.Inference, labels)
		c.Cameras[id] = cam
	}
}

func (d *decoder) checkServer(s *Server) {
	host, port, err := net.SplitHostPort(s.Listen)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || len(s.Listen) > maxListen || strings.ContainsFunc(host, unicode.IsSpace) {
		d.failAt("server.listen", s.Listen, errors.New("want an address such as 127.0.0.1:8080, [::1]:8080 or :8080"))
	} else if !isLoopback(host) && s.Auth == nil {
		d.failAt("server.listen", "", fmt.Errorf("%s can be reached from other machines and needs server.auth: "+
			"set user and password_hash (edgecam hash-password makes one), or listen on 127.0.0.1:%d", s.Listen, n))
	}
	if s.Auth == nil {
		return
	}
	if isLeftOut(s.Auth.PasswordHash) {
		d.failAt("server.auth.password_hash", "", errLeftOut)
		return
	}
	if n := utf8.RuneCountInString(s.Auth.User); n < 1 || n > maxName || hasControl(s.Auth.User) {
		d.failAt("server.auth.user", "", fmt.Errorf("want a name of 1 to %d characters", maxName))
	}
	if err := checkHash(s.Auth.PasswordHash.Reveal()); err != nil {
		d.failAt("server.auth.password_hash", "", err)
	}
}

// isLeftOut says whether a backup has left a secret, or part of it, out.
func isLeftOut(s Secret) bool { return strings.Contains(s.Reveal(), LeftOut) }

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkHash wants an argon2id hash in PHC form, of a cost that a login can bear.
func checkHash(hash string) error {
	m := phcPattern.FindStringSubmatch(hash)
	if m == nil {
		return errors.New("want an argon2id hash ($argon2id$v=19$m=…,t=…,p=…$…$…), as edgecam hash-password makes it")
	}
	memory, _ := strconv.Atoi(m[1]) // digits by the pattern
	passes, _ := strconv.Atoi(m[2])
	lanes, _ := strconv.Atoi(m[3])
	salt, err1 := base64.RawStdEncoding.DecodeString(m[4])
	key, err2 := base64.RawStdEncoding.DecodeString(m[5])
	switch {
	case err1 != nil || err2 != nil || len(salt) < 8 || len(key) < 16 || len(key) > 128:
		return errors.New("the argon2id hash is damaged: make a new one with edgecam hash-password")
	case memory < 8*lanes || memory > 1<<20 || passes < 1 || passes > 100 || lanes < 1 || lanes > 255:
		return errors.New("the argon2id hash costs too much or too little: want m=8·p to 1048576 (KiB), t=1 to 100, p=1 to 255")
	}
	return nil
}

func (d *decoder) checkInference(i *Inference) {
	d.oneOf("inference.provider", i.Provider, "auto", "cpu", "cuda", "tensorrt")
	d.oneOf("inference.precision", i.Precision, "auto", "fp32", "fp16", "int8")
	d.fraction("inference.score_threshold", i.ScoreThreshold)
	d.fraction("inference.nms_iou", i.NMSIoU)
	if i.MaxBatch < 1 || i.MaxBatch > 256 {
		d.failAt("inference.max_batch", strconv.Itoa(i.MaxBatch), errors.New("want 1 to 256"))
	}
	d.between("inference.latency_budget", i.LatencyBudget, time.Millisecond, 10*time.Second)
}

func (d *decoder) checkCamera(path string, c *Camera, checkURL func(url, user, password string) error) {
	if n := utf8.RuneCountInString(c.Name); n > maxName || !utf8.ValidString(c.Name) || hasControl(c.Name) {
		d.failAt(path+".name", c.Name, fmt.Errorf("want a text of at most %d characters in one line", maxName))
	}
	if utf8.RuneCountInString(c.Username) > maxName || hasControl(c.Username) {
		d.failAt(path+".username", "", fmt.Errorf("want a text of at most %d characters in one line", maxName))
	}
	if isLeftOut(c.Password) {
		d.failAt(path+".password", "", errLeftOut)
	}
	if hasControl(c.Password.Reveal()) {
		d.failAt(path+".password", "", errors.New("holds a line break or another control character"))
	}
	d.checkCameraURL(path, c, checkURL)
	d.checkTLS(path, c)
	d.oneOf(path+".transport", c.Transport, "auto", "tcp", "udp")
	if n := c.Track(); c.VideoTrack != "auto" && (n < 1 || n > MaxVideoTrack) {
		d.failAt(path+".video_track", c.VideoTrack, fmt.Errorf("want auto, or the number of a video track: 1 to %d", MaxVideoTrack))
	}
	if !decoderPattern.MatchString(c.Decoder) {
		d.failAt(path+".decoder", c.Decoder, errors.New("want auto, software, nvdec or the name of an FFmpeg decoder"))
	}
	if !(c.Detect.FPS >= 0 && c.Detect.FPS <= 240) {
		d.failAt(path+".detect.fps", number(c.Detect.FPS), errors.New("want 0 (every picture) to 240"))
	}
	if c.Detect.Priority < 1 || c.Detect.Priority > 10 {
		d.failAt(path+".detect.priority", strconv.Itoa(c.Detect.Priority), errors.New("want 1 to 10"))
	}
	for label, score := range c.Detect.Objects {
		p := path + ".detect.objects." + label
		if strings.TrimSpace(label) == "" || utf8.RuneCountInString(label) > 64 || hasControl(label) {
			d.failAt(p, label, errors.New("want a label of 1 to 64 characters"))
		}
		d.fraction(p, score)
	}
	d.between(path+".connect_timeout", c.ConnectTimeout, time.Second, 5*time.Minute)
	d.between(path+".first_frame_timeout", c.FirstFrameTimeout, time.Second, 10*time.Minute)
	if c.StallTimeout != 0 {
		d.between(path+".stall_timeout", c.StallTimeout, time.Second, time.Hour)
	}
}

// checkCameraURL trims the URL, checks it, and lets the caller's check follow.
func (d *decoder) checkCameraURL(path string, c *Camera, checkURL func(url, user, password string) error) {
	url := strings.TrimSpace(c.URL.Reveal())
	c.URL = NewSecret(url)
	if _, ok := d.at[path+".url"]; !ok && url == "" {
		d.failAt(path+".url", "", errors.New("missing: want rtsp://host/path"))
		return
	}
	if isLeftOut(c.URL) {
		d.failAt(path+".url", "", errLeftOut)
		return
	}
	hasUser, err := checkURLForm(url, c.Username != "")
	if err == nil && checkURL != nil {
		err = checkURL(url, c.Username, c.Password.Reveal())
	}
	if err != nil {
		d.failAt(path+".url", "", err)
		return
	}
	if !c.Password.IsZero() && c.Username == "" && !hasUser {
		d.failAt(path+".password", "", errors.New("without a username"))
	}
}

func (d *decoder) oneOf(path, value string, want ...string) {
	for _, w := range want {
		if value == w {
			return
		}
	}
	last := len(want) - 1
	err := fmt.Errorf("want %s or %s", strings.Join(want[:last], ", "), want[last])
	if value == "" {
		err = fmt.Errorf("%w, not an empty text", err)
	}
	d.failAt(path, value, err)
}

func (d *decoder) fraction(path string, n float64) {
	if !(n >= 0 && n <= 1) {
		d.failAt(path, number(n), errors.New("want 0 to 1"))
	}
}

func (d *decoder) between(path string, n, low, high time.Duration) {
	if cmp.Compare(n, low) < 0 || n > high {
		d.failAt(path, short(n), fmt.Errorf("want %s to %s", short(low), short(high)))
	}
}

// short writes a duration without the zeros that Duration.String ends with.
func short(n time.Duration) string {
	s := n.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
