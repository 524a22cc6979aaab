package rtsp

import (
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// Upkeep lets tests and fuzzing see what is made of requests and answers.
type Upkeep struct{ u upkeep }

// Sent hands a request in.
func (u *Upkeep) Sent(req *base.Request) { u.u.sent(req) }

// Answered hands an answer to the request in.
func (u *Upkeep) Answered(method string, res *base.Response) bool { return u.u.answered(method, res) }

// Retry is when the camera said to come back.
func (u *Upkeep) Retry() time.Duration { return u.u.retry }

// Timeout is what the camera said of its sessions.
func (u *Upkeep) Timeout() time.Duration { return u.u.timeout }

// Reception lets tests count packets.
type Reception struct{ r reception }

// Packet counts one.
func (r *Reception) Packet(pkt *rtp.Packet, now time.Time) { r.r.packet(pkt, now) }

// Sender notes a sender report.
func (r *Reception) Sender(report *rtcp.SenderReport, now time.Time) { r.r.sender(report, now) }

// Report makes the next report.
func (r *Reception) Report(now time.Time) *rtcp.ReceiverReport {
	return (*r.r.report(now).(*rtcp.CompoundPacket))[0].(*rtcp.ReceiverReport)
}

// RepairHead is what gortsplib gets for the head of a message.
func RepairHead(head []byte) []byte { return repairHead(head) }
