package sysav

import (
	"bytes"
	"testing"
)

func TestOrder(t *testing.T) {
	var o order
	// Past the point where the numbers begin again.
	o.sent = wrap - 5
	for i := range int64(400) {
		mark := o.send(i * 40)
		if mark < 1 || mark > wrap {
			t.Fatalf("unit %d has the time %d", i, mark)
		}
		if i < 20 {
			continue
		}
		late := (mark-1-20+wrap)%wrap + 1
		if pts, ok := o.come(late); !ok || pts != (i-20)*40 {
			t.Fatalf("picture %d is of %d, %v", late, pts, ok)
		}
		if err := o.late(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := o.come(0); ok {
		t.Error("a picture without a time has a unit")
	}
	for range maxPending - 20 {
		o.send(0)
	}
	if err := o.late(); err != nil {
		t.Error(err)
	}
	o.send(0)
	if err := o.late(); err == nil || err.Error() != "it is 65 access units behind" {
		t.Errorf("error %v", err)
	}
}

func TestSets(t *testing.T) {
	// Ids are Exp-Golomb: 1 is 0, 010 is 1, 011 is 2.
	sps0, sps1 := []byte{0x67, 66, 0, 30, 0x80}, []byte{0x67, 66, 0, 30, 0x40}
	pps0, pps1, slice := []byte{0x68, 0x80}, []byte{0x68, 0x40}, []byte{0x65, 1, 2, 3}
	s := sets{codec: "h264"}
	want := func(text string, known ...[]byte) {
		t.Helper()
		if got := bytes.Join(s.known, []byte("|")); !bytes.Equal(got, bytes.Join(known, []byte("|"))) {
			t.Errorf("%s: %x, want %x", text, s.known, known)
		}
	}
	if s.learn([][]byte{pps0, slice}) {
		t.Error("a picture parameter set is taken for a sequence's")
	}
	if !s.learn([][]byte{sps0}) {
		t.Error("a sequence parameter set is not seen")
	}
	want("in order", sps0, pps0)
	s.learn([][]byte{sps1, pps1})
	want("several", sps0, sps1, pps0, pps1)
	newer := append(bytes.Clone(sps0), 7)
	s.learn([][]byte{newer, nil, {0x67}})
	want("one is replaced", newer, sps1, pps0, pps1)
	newer[4] = 0 // the caller's memory
	want("kept apart", append(bytes.Clone(sps0), 7), sps1, pps0, pps1)
	if got := s.with([][]byte{slice, nil}, true); len(got) != 5 || &got[4][0] != &slice[0] {
		t.Errorf("the first unit is %x", got)
	}
	if got := s.with([][]byte{slice, nil}, false); len(got) != 1 {
		t.Errorf("a later unit is %x", got)
	}
	for i := range byte(255) {
		s.learn([][]byte{{0x68, 0, i, 0}})
	}
	if len(s.known) > maxSets {
		t.Errorf("%d sets", len(s.known))
	}
}
