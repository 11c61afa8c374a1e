/** How much the bucket keeps: its list, and the collector that removes what is oldest. */
package ucm.store.s3.capacity;
