"""Stand between an agent and its API, pass every byte on, and write each call down as an exact trace.

    upstreams    which API a request is for, where it goes, what a command must be told to come through here
    proxy        HTTP: chunks passed on as they come, a copy kept of calls that are recorded
    bodies       from the bytes of a request and a response to what they say
    answers      a streamed answer folded to the one that a plain call gives
    recorder     one line a call on the disk, without keys
    fingerprint  repository, versions and command, so that a trace can be executed again
    session      all of it around a command, or until it is stopped

Import what is needed from its own module; this package imports nothing by itself.
"""
