/**
 * Stores, clocks and libraries that fail on demand, a correct store in memory to wrap, and what a local tier
 * must do while the stage below it fails. A plan with a seed goes in, faults come out at the same places
 * each time. It knows {@code ucm.api} alone.
 */
package ucm.testkit.fault;
