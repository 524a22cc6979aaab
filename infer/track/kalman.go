package track

// axis is a Kalman filter of one coordinate with constant velocity. Position
// and velocity of centre, width and height do not depend on each other, so four
// of these are the whole filter, without matrices.
type axis struct {
	x, v          float64 // position, velocity a second
	pxx, pxv, pvv float64 // covariance
}

// start sets the filter on a measured position, with unknown velocity.
func start(x, sigma, sigmaV float64) axis {
	return axis{x: x, pxx: sigma * sigma, pvv: sigmaV * sigmaV}
}

// predict moves dt seconds on. q is the density of the acceleration's noise
// (white, so that two steps of dt/2 make the same as one of dt).
func (a *axis) predict(dt, q float64) {
	a.x += a.v * dt
	a.pxx += dt*(2*a.pxv+dt*a.pvv) + q*dt*dt*dt/3
	a.pxv += dt*a.pvv + q*dt*dt/2
	a.pvv += q * dt
}

// correct takes a measured position. sigma is more than 0.
func (a *axis) correct(x, sigma float64) {
	s := a.pxx + sigma*sigma
	rest := sigma * sigma / s // 1−kx, which would round to 0 for a sure measurement
	kx, kv := a.pxx/s, a.pxv/s
	residual := x - a.x
	a.x += kx * residual
	a.v += kv * residual
	a.pvv -= kv * a.pxv
	a.pxv *= rest
	a.pxx *= rest
}
