[Baton]
title=Baton
description=Hands activities over to your other devices. `baton node install --port 24747` makes the node use this port.
ports=5353/udp|24747/tcp
