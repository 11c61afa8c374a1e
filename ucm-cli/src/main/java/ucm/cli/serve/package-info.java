/**
 * {@code ucm serve} and {@code ucm serve status}: options go in, a daemon runs or says what it serves. It knows no
 * message of the protocol.
 */
package ucm.cli.serve;
