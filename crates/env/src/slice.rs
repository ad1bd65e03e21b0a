//! How long a task may run before it yields.

use std::time::Duration;

/// Slice of CPU after which [`Env::should_yield`] says so.
pub const SLICE: Duration = Duration::from_micros(200);
/// The same of what nobody waits for ([`Class::is_bulk`]): a request that comes meanwhile waits for
/// the rest of it, and one that crosses shards for the rest of up to three.
pub const BULK_SLICE: Duration = Duration::from_micros(100);
