/** Which blocks the bucket has: by asking for some of them, and by what this process has seen lately. */
package ucm.store.s3.lookup;
