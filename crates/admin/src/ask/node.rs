//! Verbs of the node itself.

use crate::model::Shown;
use crate::nodetool::NodeVerb;
use crate::operator::{Answer, NodeOperator};

const IO_WINDOWS_PER_SECOND: u64 = 1000 / env::IO_WINDOW.as_millis() as u64;

pub(super) async fn ask(operator: &impl NodeOperator, verb: NodeVerb) -> Answer<Option<Shown>> {
    match verb {
        // The socket ends the node, once the answer is sent.
        NodeVerb::Drain | NodeVerb::StopDaemon => operator.drain().await?,
        NodeVerb::EnableBinary => operator.start_native_transport().await?,
        NodeVerb::DisableBinary { force } => operator.stop_native_transport(force).await?,
        NodeVerb::Version { .. } => return Ok(Some(Shown::Release(operator.release().await?))),
        NodeVerb::Info { .. } => return Ok(Some(Shown::Node(Box::new(operator.node().await?)))),
        NodeVerb::Doctor { .. } => {
            return Ok(Some(Shown::Doctor(Box::new(operator.examination().await?))));
        }
        NodeVerb::IoStats { seconds, windows, .. } => {
            let count = seconds.saturating_mul(IO_WINDOWS_PER_SECOND);
            let mut stats = operator.io_stats(count).await?;
            stats.windows = stats.windows.filter(|_| windows);
            return Ok(Some(Shown::Io(Box::new(stats))));
        }
        NodeVerb::StatusBinary => {
            let running = operator.native_transport().await?;
            return Ok(Some(Shown::NativeTransport { running }));
        }
    }
    Ok(None)
}
