//! `--demo`: the machine's own counters as rows, written through the coordinator like any client's.

use std::cell::OnceCell;
use std::rc::Rc;

use cluster::{Request, Shard};
use env::Class;
use protocol::{QueryOptions, Version};

use crate::node::Node;

impl Node {
    /// Writes demonstration data until the node ends; `say` prints a line. For the first shard.
    pub fn start_demo(self: &Rc<Self>, say: impl Fn(&str) + 'static) {
        let node = Rc::clone(self);
        self.env().spawn(Class::Background, async move {
            let execute = async |text: String| execute(node.shard(), &text).await;
            if let Err(error) = admin::demo::run(node.env(), execute, &say).await {
                say(&format!("demo: {error}"));
            }
        });
    }
}

async fn execute(shard: &Rc<Shard>, text: &str) -> Result<(), String> {
    let options = QueryOptions::default();
    let deadline = shard.engine().env().now() + admin::demo::STATEMENT_DEADLINE;
    let version = Version::V5;
    let request = Request {
        keyspace: None,
        version,
        options: &options,
        deadline,
        user: None,
        tracing: None,
        guard: OnceCell::new(),
        observed: None,
        is_shard_aware: false,
    };
    let outcome = shard.coordinator().query(text, request).await;
    outcome.result.map(drop).map_err(|error| error.message)
}
