package pipeline

import "testing"

func TestPictureBoxKeepsTheNewest(t *testing.T) {
	b := newPictureBox()
	b.put(picture{frame: testFrame("a", 1)})
	b.put(picture{frame: testFrame("a", 3)})
	b.put(picture{frame: testFrame("a", 2)}) // late
	p, ok := b.take()
	if !ok || p.frame.Meta().Seq != 3 {
		t.Fatalf("took %v, want picture 3", ok)
	}
	p.frame.Release()
	b.put(picture{frame: testFrame("a", 3)}) // again
	if _, ok := b.take(); ok {
		t.Error("a picture that was taken came again")
	}
	b.put(picture{frame: testFrame("a", 4)})
	b.close()
	b.put(picture{frame: testFrame("a", 5)})
	if _, ok := b.take(); ok {
		t.Error("a closed box gave a picture")
	}
}
