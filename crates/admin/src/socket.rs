//! The operator's socket: `admin.sock` in the data directory, for the node's own user alone.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use env::{Class, Env, Task, TcpListener, TcpStream};
use metrics::{Name, Registry, Unit};
use tls::Wire;

use crate::connections::{self, BindError};
use crate::conversation::{Conversation, refuse_more, runs_many};
use crate::operator::Operator;

/// The socket's name in the data directory.
pub const NAME: &str = "admin.sock";
/// Verbs that run at a time.
pub const MAX_CONNECTIONS: u64 = 32;

/// The listening socket; dropping it removes it. Verbs that run go on.
#[derive(Debug)]
#[must_use = "dropping it closes the socket"]
pub struct Socket {
    /// Where it is.
    pub path: PathBuf,
    _task: Task<()>,
}

/// Listens on [`NAME`] in `data_dir`, whose lock the caller holds, and runs verbs on `operator`. A
/// verb runs to its end even if its client goes away, as in Cassandra.
pub fn serve<O: Operator>(
    env: &Env,
    data_dir: &Path,
    registry: &Registry,
    operator: Rc<O>,
) -> Result<Socket, BindError> {
    let path = data_dir.join(NAME);
    let listener = TcpListener::bind_unix(env, &path).map_err(BindError::new(path.display()))?;
    let refused = registry.counter(
        Name::new("Admin", "OperatorConnectionsRefused"),
        Unit::Count,
        "Connections to the operator's socket beyond its limit.",
    );
    let handle = move |env: Env, stream: TcpStream| {
        let operator = operator.clone();
        async move {
            // without TLS nothing is begun that could fail
            if let Ok(wire) = Wire::accepted(&env, stream, None) {
                Conversation::new(&env, &wire).run(operator.as_ref()).await;
            }
        }
    };
    let refuse = |stream: &TcpStream| refuse_more(stream, runs_many(MAX_CONNECTIONS));
    let serving =
        connections::accept(env.clone(), listener, MAX_CONNECTIONS, refused, handle, refuse);
    Ok(Socket { path, _task: env.spawn_task(Class::Admin, serving) })
}
