"""GStreamer's RTSP server with one H.264 file: CLIP USER PASSWORD.

Prints the URL on the first line, and plays until it is killed.
"""
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

clip, user, password = sys.argv[1:4]
Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    f'( filesrc location="{clip}" ! qtdemux ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=1 )'
)
factory.set_shared(True)
if user:
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    auth.add_digest(user, password, token)
    server.set_auth(auth)
    factory.add_role_from_structure(
        Gst.Structure.new_from_string("viewer, media.factory.access=true, media.factory.construct=true")
    )
server.get_mount_points().add_factory("/x", factory)
server.attach(None)
print(f"rtsp://127.0.0.1:{server.get_bound_port()}/x", flush=True)
GLib.MainLoop().run()
