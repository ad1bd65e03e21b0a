//! `system_views.streaming`: plans under way and over (`StreamingVirtualTable`).

use schema::Schema;
use streaming::{PlanView, Status, Sum};

use super::data::NodeData;
use super::sink::{Datum, Sink};

pub(super) fn streaming(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    data.streams.as_ref()?.iter().for_each(|plan| row(sink, plan));
    Some(())
}

fn row(sink: &mut Sink<'_>, plan: &PlanView) {
    let peers: Vec<String> = plan.peers.iter().map(|peer| format!("/{peer}")).collect();
    let duration = i64::try_from(plan.duration.as_millis()).unwrap_or(i64::MAX);
    let mut values = vec![
        ("id", Datum::Uuid(plan.id.to_bytes())),
        ("duration_millis", Datum::BigInt(duration)),
        ("failure_cause", plan.failure.as_deref().into()),
        ("follower", Datum::Boolean(plan.is_follower)),
        ("last_updated_at", Datum::Timestamp(plan.updated_at)),
        ("operation", Datum::Text(plan.operation.name())),
        ("peers", Datum::TextList(&peers)),
        ("progress_percentage", Datum::Float(percentage(plan.progress))),
        ("status", Datum::Text(plan.status.name())),
    ];
    for (status, at) in &plan.reached {
        let column = match status {
            Status::Init => "status_init_timestamp",
            Status::Start => "status_start_timestamp",
            Status::Success => "status_success_timestamp",
            Status::Failure => "status_failure_timestamp",
        };
        values.push((column, Datum::Timestamp(*at)));
    }
    let (coming, going) = (plan.receiving, plan.sending);
    // Cassandra shows no numbers of what has not been prepared
    let is_empty = |sum: Sum| sum.files == 0 && sum.bytes == 0;
    if !is_empty(coming) || !is_empty(going) {
        let number = |number: u64| Datum::BigInt(i64::try_from(number).unwrap_or(i64::MAX));
        values.extend([
            ("bytes_received", number(coming.bytes_done)),
            ("bytes_sent", number(going.bytes_done)),
            ("bytes_to_receive", number(coming.bytes)),
            ("bytes_to_send", number(going.bytes)),
            ("files_received", number(coming.files_done)),
            ("files_sent", number(going.files_done)),
            ("files_to_receive", number(coming.files)),
            ("files_to_send", number(going.files)),
        ]);
    }
    sink.row(&values);
}

/// Whole per cent, cut off: Cassandra's `round` divides whole numbers.
fn percentage(progress: f32) -> f32 {
    ((progress * 100.0 * 100.0).round() / 100.0).trunc()
}
