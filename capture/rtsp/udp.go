package rtsp

import "net"

// udpRoom is asked of the system for packets that wait to be read: a key picture
// comes as one burst, of 1 MB and more in 4K. Linux gives twice
// net.core.rmem_max at most, 416 kB unless it is raised.
const udpRoom = 4 << 20

// listenUDP opens a socket for packets of a camera.
func listenUDP(network, address string) (net.PacketConn, error) {
	conn, err := net.ListenPacket(network, address) //nolint:noctx // it waits for nothing
	if err != nil {
		return nil, err
	}
	if udp, ok := conn.(*net.UDPConn); ok {
		_ = udp.SetReadBuffer(udpRoom) // with less room it works too
	}
	return conn, nil
}
