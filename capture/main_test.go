package capture_test

import (
	"testing"

	"edgecam/internal/testkit"
)

func TestMain(m *testing.M) { testkit.CheckFrames(m) }
