/**
 * Models on the command line, and {@code ucm calc}: bytes of KV cache and GPU time per token. A
 * name or a config.json goes in, numbers come out. It reads no trace.
 */
package ucm.cli.model;
