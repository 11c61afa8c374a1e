/**
 * A whole trace in compact memory: blocks numbered in the order of their first use, sessions,
 * prefixes. Requests go in once and are read many times. It simulates nothing.
 */
package ucm.lite.record;
