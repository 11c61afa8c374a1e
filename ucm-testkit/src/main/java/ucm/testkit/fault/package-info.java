/**
 * Stores, clocks and libraries that fail on demand, and a correct store in memory to wrap. A plan
 * with a seed goes in, faults come out at the same places each time. It knows {@code ucm.api}
 * alone.
 */
package ucm.testkit.fault;
