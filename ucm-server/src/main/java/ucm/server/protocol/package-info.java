/**
 * Frames and messages of {@code docs/protocol.md}, as bytes and as records. Nothing here keeps a state or knows
 * what a message is for.
 */
package ucm.server.protocol;
