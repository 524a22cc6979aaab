// Package rtsp is the session with an RTSP camera: a capture.Source on
// gortsplib's client.
//
// # Position
//
// The capture supervisor opens one Source an attempt and runs it; the Source
// gives access units to the supervisor's sink. ParseURL is also what the
// configuration is checked with.
//
//	URL → url.go → dial.go, tls.go → DESCRIBE → sdp.go, track.go (which video)
//	    → SETUP (control.go, setup.go), PLAY (session.go) → packets (receive.go) → sequence.go (order)
//	    → depacketize.go (NAL units) → nal.go, accessunit.go (pictures)
//	    → sets.go (parameter sets in front) → capture.Sink
//
// What cameras do wrong is dealt with in the file of its kind: descriptions in
// sdp.go, answers to requests in answers.go, their numbers, sessions and signs
// of life in upkeep.go, their heads in head.go, requests of their own in
// serverrequest.go, receiver reports in reports.go, logins in digest.go,
// redirects in redirect.go, servers that are none in conn.go, bytes between frames in
// interleaved.go, packets lost and streams begun anew in sequence.go, pictures
// cut wrongly in accessunit.go, clocks in wallclock.go, transports in
// transport.go. failure.go turns every error into the typed ones of package
// capture.
//
// # Ownership
//
// The bytes of an access unit belong to the sink. TransportMemory belongs to
// the caller, and outlives Sources.
//
// # Concurrency
//
// Run owns every goroutine and socket and has ended them when it returns,
// whatever the camera does, within about a second of the end of its context.
// The sink is called from one goroutine at a time and must not block.
//
// # Failure
//
// Run gives a capture.Failure, or the context's error once that has ended.
// An open session is always torn down, so that the camera frees it.
package rtsp
