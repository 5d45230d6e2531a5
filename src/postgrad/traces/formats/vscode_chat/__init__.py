"""Chat sessions of VS Code (Copilot Chat): whole documents, and logs of changes to one."""
