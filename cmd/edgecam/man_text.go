package main

const manualDescription = `edgecam plays RTSP cameras, finds objects in their pictures, and serves a dashboard, an API and metrics.
As a service it is started by systemd with the configuration /etc/edgecam/edgecam.yaml. The dashboard is at
http://127.0.0.1:8080 until the configuration names another address, which takes a login.

Add a camera to the configuration, then have it read again:

    cameras:
      gate:
        url: rtsp://192.0.2.21/stream1

    systemctl reload edgecam

A reload restarts the cameras that changed and no other. A file with a mistake changes nothing, and the reload says what is
wrong with it.`

type manualSection struct {
	title, text string
	items       [][2]string
}

// manualSections are those that belong to no command.
func manualSections() []manualSection {
	return []manualSection{
		{title: "FILES", items: [][2]string{
			{"/etc/edgecam/edgecam.yaml", "The configuration, with every key, its default and its meaning. Root and the group edgecam can read it: passwords of cameras may stand in it."},
			{"/usr/share/doc/edgecam/examples/edgecam.yaml", "The same as it was when it was installed."},
			{"/var/lib/edgecam", "What outlives a restart. It belongs to the user edgecam."},
			{"/var/cache/edgecam", "What can be made again."},
			{"/usr/lib/edgecam/libonnxruntime.so.1", "ONNX Runtime for the processor. A build for GPUs is named by inference.library in the configuration."},
		}},
		{title: "EXIT STATUS", items: [][2]string{
			{"0", "Everything went well, or the program was told to stop."},
			{"1", "Something failed, which was said on standard error."},
			{"2", "The command line makes no sense."},
			{"78", "The configuration, or what is in the state directory, cannot be used. systemd does not start the service again before somebody does."},
		}},
		{title: "ENVIRONMENT", items: [][2]string{
			{"EDGECAM_SERVER_LISTEN and others", "Override values of the configuration. The name is made of the keys, in capitals, such as EDGECAM_CAMERAS_GATE_PASSWORD; a - in an id becomes _."},
			{"EDGECAM_ONNXRUNTIME", "Path of the ONNX Runtime library, where the configuration names none."},
			{"STATE_DIRECTORY", "Directory for what outlives a restart, where the configuration names none. systemd sets it."},
			{"NOTIFY_SOCKET, WATCHDOG_USEC", "Set by systemd, which is told when the service is ready and that pictures go on moving."},
		}},
		{title: "SIGNALS", text: "These are for edgecam run.", items: [][2]string{
			{"SIGHUP", "Read the configuration again."},
			{"SIGTERM, SIGINT", "Say goodbye to the cameras and end. A second one ends the program at once."},
			{"SIGABRT", "End at once, and print what every part of the program waits for. systemd's watchdog sends it."},
		}},
		{title: "SEE ALSO", text: "systemctl(1), journalctl(1)\n\nThe service writes its log to the journal: journalctl -u edgecam"},
	}
}
