/**
 * An engine's stay at the daemon: its scheduler side, its ranks, what is held for its requests and what of their
 * blocks is being saved. Messages come in, answers go out, blocks go through the pipeline. It knows no socket.
 */
package ucm.server.session;
