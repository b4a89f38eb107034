[Baton]
title=Baton
description=Hands activities over to your other devices. A node uses port 24747 after `baton node install --port 24747`, and an invitation uses port 24748.
ports=5353/udp|24747:24748/tcp
