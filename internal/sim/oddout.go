package sim

import (
	"net"
)

// outlet takes packets to the client.
type outlet interface {
	rtp(packet []byte) error
	rtcp(packet []byte) error
	junk(bytes []byte) error // what is no packet
	close()
}

// interleaved sends over the connection of the requests.
type interleaved struct {
	t        *talk
	channels [2]int
}

func (o *interleaved) frame(channel int, packet []byte) error {
	b := make([]byte, 4, 4+len(packet))
	b[0], b[1], b[2], b[3] = '$', byte(channel), byte(len(packet)>>8), byte(len(packet)&0xff)
	return o.t.write(append(b, packet...))
}

func (o *interleaved) rtp(packet []byte) error  { return o.frame(o.channels[0], packet) }
func (o *interleaved) rtcp(packet []byte) error { return o.frame(o.channels[1], packet) }
func (o *interleaved) junk(bytes []byte) error  { return o.t.write(bytes) }
func (o *interleaved) close()                   {}

// datagrams sends over UDP.
type datagrams struct {
	sockets [2]*net.UDPConn
	to      [2]*net.UDPAddr
}

// newDatagrams opens a pair of ports beside conn.
func newDatagrams(conn net.Conn, client [2]int) (*datagrams, [2]int, error) {
	local, remote := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr) //nolint:forcetypeassert // of a TCP listener
	o := &datagrams{}
	var ports [2]int
	for i := range o.sockets {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: local.IP})
		if err != nil {
			o.close()
			return nil, ports, err
		}
		o.sockets[i], o.to[i] = socket, &net.UDPAddr{IP: remote.IP, Port: client[i], Zone: remote.Zone}
		ports[i] = socket.LocalAddr().(*net.UDPAddr).Port //nolint:forcetypeassert // of a UDP socket
	}
	return o, ports, nil
}

// send does not tell of a client that is gone: its connection does.
func (o *datagrams) send(i int, packet []byte) error {
	_, _ = o.sockets[i].WriteToUDP(packet, o.to[i])
	return nil
}

func (o *datagrams) rtp(packet []byte) error  { return o.send(0, packet) }
func (o *datagrams) rtcp(packet []byte) error { return o.send(1, packet) }
func (o *datagrams) junk(bytes []byte) error  { return o.send(0, bytes) }

func (o *datagrams) close() {
	for _, s := range o.sockets {
		if s != nil {
			_ = s.Close() // nothing is waiting in it
		}
	}
}
