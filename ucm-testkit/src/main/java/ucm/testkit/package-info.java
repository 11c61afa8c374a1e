/**
 * For authors of stores: the contract suite that every store passes, and what its tests need. A
 * test extends {@link ucm.testkit.StoreContract}. It knows {@code ucm.api} alone.
 */
package ucm.testkit;
