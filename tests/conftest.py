"""What all tests share."""

import signal
import threading

# A shell lets its background jobs ignore Ctrl-C, and children inherit that: tests that interrupt would wait for ever.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
