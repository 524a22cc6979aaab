package preprocess

import (
	"testing"

	"edgecam/internal/testkit"
)

func TestMain(m *testing.M) { testkit.CheckFrames(m) }
