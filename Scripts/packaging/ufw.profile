[Baton]
title=Baton
description=Hands activities over to your other devices. The node keeps its TCP port if it runs with --port 24747.
ports=5353/udp|24747/tcp
