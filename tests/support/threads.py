"""Calls in other threads."""

import threading


def in_thread(function, *arguments):
    """Starts a call; returns a function that waits for its result, or raises its exception."""
    outcome = {}

    def run():
        try:
            outcome["result"] = function(*arguments)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()

    def wait():
        thread.join(timeout=30)
        assert not thread.is_alive(), "the call hangs"
        if "error" in outcome:
            raise outcome.pop("error")  # kept here, it would be in a cycle with this frame
        return outcome["result"]

    return wait
