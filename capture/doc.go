// Package capture keeps the session with one camera alive and turns it into
// frames.
//
// # Position
//
// The pipeline makes one Supervisor a camera. The Supervisor opens Sources
// (package capture/rtsp), queues their access units, has a Decoder (package
// capture/decode) turn them into frames, and hands each frame to Emit.
//
//	Source ──access units──► ring ──► Decoder ──frames──► Emit
//	   ▲                                          │
//	   └── opened again, with back-off ◄── watchdog on decoded frames
//
// # Ownership
//
// An access unit belongs to whoever it was given to: source, ring, decoder.
// Emit consumes its frame. The Supervisor closes every Decoder that it made.
//
// # Concurrency
//
// Run owns all goroutines: the Source's, one that decodes, one that watches.
// The Source never waits for the decoder: the ring between them is bounded and
// drops up to the next random access point when it is full, or the decoder so
// late that it cannot catch up. Pictures that a frozen network held up are dated
// back to when they should have come (lateness), so that nothing behind takes
// them for new. Status may be
// called from anywhere, at any time, and is cheap.
//
// # Failure
//
// Nothing that a camera does ends Run; its context does, within two seconds.
// Every failure becomes a state with a reason in words (errors.go), and a
// wait: from one second to half a minute for what may pass, minutes for a
// refused login, so that the camera does not lock the account, and for a
// stream that is not supported. The wait starts small again only after video
// was stable, or when the port of a camera that was away answers: a Prober
// looks for that, so that a camera is not left waiting after its return. The
// journal bounds what all this writes into the log. A decode error is damage, counted, and no failure.
package capture
