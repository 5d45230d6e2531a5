"""Serve a policy behind OpenAI's chat-completions API and capture every exchange as a trace.

    request  what a client asks for, read strictly      engine, scripted, policy_engine  what answers
    reading  a model's text to events                   encoding  events to OpenAI's JSON
    worker   one generation at a time, in order         exchange, app, server  HTTP
    log      exchanges on the disk                      once  one request, for a cycle

Import what is needed from its own module; this package imports nothing by itself.
"""
