package preprocess

import (
	"fmt"
	"math"
)

// Tile is the part of the output that one block of threads writes. Both sides
// are powers of two.
type Tile struct{ Width, Height int }

// maxShared is the dynamic shared memory that every GPU gives a block without
// being asked for more.
const maxShared = 48 << 10

// Bytes of what lies in shared memory before the pixels (image.h): the image,
// the windows, and for each row of the tile and plane a line and four addresses.
const (
	windowsAt   = 144
	windowBytes = 64
	lineBytes   = 16
	requestLine = 128 // LINE
)

func (t Tile) check() error {
	for _, n := range [2]int{t.Width, t.Height} {
		if n < 1 || n > 1024 || n&(n-1) != 0 {
			return fmt.Errorf("tile of %dx%d: sides must be powers of two up to 1024", t.Width, t.Height)
		}
	}
	return nil
}

// header is how much of a block's shared memory lies before the pixels
// (bytes_at in kernels/image.h).
func (t Tile) header() int {
	n := windowsAt + 3*windowBytes + 3*t.Height*(lineBytes+4*8)
	return (n + requestLine - 1) &^ (requestLine - 1)
}

// shared is the most dynamic shared memory that a block of this tile needs for
// the picture: the windows of all its planes (window_of in kernels/image.h).
func (t Tile) shared(g *gpuImage) int {
	total := t.header() + t.window(int(g.bytes), g.rx, g.ry)
	switch g.planes {
	case 2:
		total += t.window(int(2*g.bytes), g.crx, g.cry)
	case 3:
		total += 2 * t.window(int(g.bytes), g.crx, g.cry)
	}
	return total
}

// window bounds one plane's part. A tile of n outputs at ratio r spans at most
// (n-1)·r+2 samples, and rounding may add one at each end.
func (t Tile) window(step int, rx, ry float32) int {
	cols := int(math.Ceil(float64(t.Width-1)*float64(rx))) + 4
	rows := 2 * t.Height
	if ry <= 2 {
		rows = int(math.Ceil(float64(t.Height-1)*float64(ry))) + 4
	}
	return rows * ((cols*step + 2*(requestLine-1)) / requestLine) * requestLine
}

// fit halves a tile until the picture's windows fit into shared memory: rows
// first, as long rows are what the bus likes.
func (t Tile) fit(g *gpuImage) Tile {
	for t.shared(g) > maxShared && t.Width*t.Height > 1 {
		if t.Height > 1 {
			t.Height /= 2
		} else {
			t.Width /= 2
		}
	}
	return t
}

// fitAll is the tile that fits all pictures, and the shared memory that it takes.
func (t Tile) fitAll(images []gpuImage) (tile Tile, shared int) {
	for i := range images {
		t = t.fit(&images[i])
	}
	for i := range images {
		shared = max(shared, t.shared(&images[i]))
	}
	return t, shared
}
