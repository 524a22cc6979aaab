// Package web shows the product: the HTTP API, live pictures, detections as
// they are made, metrics, the login, and the dashboard in one server.
//
// # Position
//
// Last stage of the path. It is fed by whatever fulfils Backend (the pipeline)
// and feeds browsers, scrapers and scripts. It knows nothing of frames, models
// or configuration: pictures arrive as finished JPEGs, everything else as the
// plain values in types.go, which are the JSON of the API. openapi.yaml is the
// written contract; a test holds routes, answers and document together.
//
// # Ownership
//
// JPEGs and detections are shared between all viewers and are only read here.
// A stream that a handler opens at the Backend is closed by that handler.
// Nothing is queued per viewer: each takes the newest when it is ready for
// more, and the kernel is told to hold little that is not on the wire yet.
//
// # Concurrency
//
// New opens the listener, Run serves until its context ends and returns when
// every handler has returned. One goroutine per request, as net/http does it;
// what they share (sessions, limits, viewer counts) has its own mutex, and no
// lock is held while writing to a client.
//
// # Failure
//
// A viewer that takes no byte for the stall timeout is cut off; nobody else
// notices. More viewers than the limit get 503. A panic in a handler becomes
// 500, or a cut stream, and a log record with the stack. Every error is
// {"error":{"code","message"}}. When Run's context ends, streams end at once,
// other requests get a second, and then connections are closed.
//
// # Security
//
// Every request passes guard before it reaches the router: Host (a listener
// without login is only served under its own names, against DNS rebinding),
// origin (no other site may load or post anything), login. Only the paths that
// publicPath names go without login; what is not named there is closed, known to
// the router or not. Options without Auth are refused for any address that is
// not loopback.
package web
