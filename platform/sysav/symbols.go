package sysav

// symbol is a function of libavcodec or libavutil.
type symbol int

const (
	fnCodecVersion symbol = iota
	fnUtilVersion
	fnIterate
	fnIsDecoder
	fnFindDecoder
	fnCodecName
	fnAllocContext
	fnFreeContext
	fnOpen
	fnSend
	fnReceive
	fnAllocPacket
	fnNewPacket
	fnUnrefPacket
	fnFreePacket
	fnAllocFrame
	fnUnrefFrame
	fnFreeFrame
	fnSetOption
	fnSetInt
	fnPixelFormatName
	fnErrorText
	fnSetLog
	fnFormatLine
	symbols
)

func (s symbol) String() string {
	names := [symbols]string{
		"avcodec_version", "avutil_version", "av_codec_iterate", "av_codec_is_decoder", "avcodec_find_decoder_by_name",
		"avcodec_get_name", "avcodec_alloc_context3", "avcodec_free_context", "avcodec_open2", "avcodec_send_packet",
		"avcodec_receive_frame", "av_packet_alloc", "av_new_packet", "av_packet_unref", "av_packet_free",
		"av_frame_alloc", "av_frame_unref", "av_frame_free", "av_opt_set", "av_opt_set_int", "av_get_pix_fmt_name",
		"av_strerror", "av_log_set_callback", "av_log_format_line",
	}
	return names[s]
}
