/**
 * {@code ucm serve} and what operators ask of it: options go in, a daemon runs, or does what it is asked and says
 * so. It knows no message of the protocol.
 */
package ucm.cli.serve;
