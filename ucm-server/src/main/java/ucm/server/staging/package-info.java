/**
 * The memory that the daemon shares with the workers of an engine, and which parts of it are in use. It knows
 * neither blocks nor requests.
 */
package ucm.server.staging;
