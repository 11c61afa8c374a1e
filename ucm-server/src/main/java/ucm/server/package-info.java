/**
 * The command {@code ucm serve}, the socket that it listens on, and a thread for each client. Frames come in and
 * go out; what they mean is in {@code ucm.server.session}. It knows no store and no engine.
 */
package ucm.server;
