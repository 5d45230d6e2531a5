"""Messages, tools and answers in the shapes in which frameworks and providers write them down."""
