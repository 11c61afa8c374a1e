/** What decides whether a fault is worth a line of the log. It knows no store. */
package ucm.platform.fault;
