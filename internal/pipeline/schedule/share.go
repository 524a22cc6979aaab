package schedule

import "math"

// idleWeight is what the weight of an idle scene counts for: of two cameras that
// ask for the same, the idle one is lowered to a quarter before the other is
// touched.
const idleWeight = 0.25

// Claim is what a camera asks for.
type Claim struct {
	Wish   float64 // pictures a second: what it is set to, or what it gives if that is less
	Weight float64 // 1 to 10
	Idle   bool    // nothing is seen and nothing moves
}

func (c *Claim) weight() float64 {
	w := max(c.Weight, 1)
	if c.Idle {
		w *= idleWeight
	}
	return w
}

// Level is how many pictures a second each unit of weight gets when total are
// shared out: a camera gets its wish, or Level times its weight if that is less.
// It is +Inf if there is enough for all.
func Level(claims []Claim, total float64) float64 {
	// The cameras that get their wish are those that wish for the least by weight.
	// Each round takes those out that the level of the rest would satisfy; there
	// are as many rounds as kinds of cameras, and those are few.
	level := 0.0
	for {
		left, weight := total, 0.0
		for i := range claims {
			c := &claims[i]
			if c.Wish <= level*c.weight() {
				left -= c.Wish
			} else {
				weight += c.weight()
			}
		}
		if weight == 0 {
			return math.Inf(1)
		}
		next := max(left, 0) / weight
		if next <= level*(1+1e-9) {
			return next
		}
		level = next
	}
}

// Share is what the level gives a camera.
func (c *Claim) Share(level float64) float64 { return min(c.Wish, level*c.weight()) }

// Limit is what the level leaves a camera, 0 = it is not limited.
func (c *Claim) Limit(level float64) float64 {
	limit := level * c.weight()
	if c.Wish > 0 && c.Wish <= limit*(1+1e-6) || math.IsInf(level, 1) {
		return 0
	}
	return limit
}
