"""Serve a policy behind OpenAI's chat-completions API and capture every exchange as a trace.

    request  what a client asks for, read strictly      engine, scripted, policy_engine  what answers
    reading  a model's text to events                   encoding  events to OpenAI's JSON
    worker   one generation at a time, in order         exchange, app, server  HTTP
    log      exchanges on the disk                      once  one request, for a cycle
    http     any ASGI application on a socket           waiting  signals, and waiting for the one that stops
    corrections  what a human says an answer should have been
    recording/  a proxy that writes calls down          look/    traces on a page or in a terminal

Import what is needed from its own module; this package imports nothing by itself.
"""
