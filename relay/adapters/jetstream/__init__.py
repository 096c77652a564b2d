"""The bus on NATS JetStream, and the clients that it and the spaces use."""
