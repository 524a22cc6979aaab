package decode

import (
	"edgecam/framepool"
	"edgecam/platform/avcodec"
)

// picture is called for every picture that libavcodec gives, in display order.
func (d *Decoder) picture(p *avcodec.Picture) {
	d.health.picture()
	u := d.units.find(p.PTS)
	if u == nil {
		return // its unit was given up before
	}
	if d.engines[0].blind() {
		p.Key = u.randomAccess
	}
	if reason := d.gate.judge(p, u); reason != "" {
		if reason == DropDamaged {
			d.lose(u, reason)
		} else if !u.settled {
			u.settled = true
			d.counts.drop(reason)
		}
		return
	}
	u.settled = true
	d.publish(p, u)
}

func (d *Decoder) publish(p *avcodec.Picture, u *unit) {
	m := framepool.Meta{
		Camera: d.opts.Camera, Seq: d.opts.Seq.Add(1),
		Format: poolFormat(p.Format), Width: p.Width, Height: p.Height, Offset: p.Offset, Stride: p.Stride,
		Range: colourRange(p), Matrix: matrix(p),
		Received: u.received, Decoded: d.now(), CapturedAt: u.capturedAt, RTPTime: u.rtpTime, KeyFrame: p.Key,
	}
	d.info.Width, d.info.Height, d.info.PixelFormat = p.Width, p.Height, p.Format.String()
	f, reason := d.frame(p, m)
	if f == nil {
		d.counts.drop(reason)
		return
	}
	d.counts.frames.Add(1)
	d.shown = u.key
	d.emit(f)
}

// frame makes a frame of the picture where it lies, or says why not.
func (d *Decoder) frame(p *avcodec.Picture, m framepool.Meta) (f *framepool.Frame, reason string) {
	if p.Device() {
		return d.surfaces.frame(p, m)
	}
	pool, readers := d.pools.find(p.Ring)
	if p.Readers >= readers {
		return nil, DropReaders
	}
	f = pool.Adopt(p.Slot, p.Gen, m)
	d.counts.copied.Add(outside(pool, f) + uint64(p.Copied))
	return f, ""
}

// outside counts the bytes of f's planes that do not lie in the pool.
func outside(pool *framepool.Pool, f *framepool.Frame) (n uint64) {
	for i := range f.Meta().Format.Planes() {
		if b := f.Plane(i); !pool.Contains(b) {
			n += uint64(len(b))
		}
	}
	return n
}
