//go:build !cgo

package avcodec_test

import (
	"errors"
	"testing"

	"edgecam/platform/avcodec"
)

func TestUnavailable(t *testing.T) {
	_, err := avcodec.Open()
	var ue *avcodec.UnavailableError
	if !errors.As(err, &ue) || ue.Hint == "" || err.Error() != "libavcodec is not available" {
		t.Errorf("open: %v", err)
	}
}
