package org.apache.cassandra.db.compaction.unified;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Random;

/** A controller that always takes the last of what it may choose among. */
public class FixedController extends Controller
{
    private FixedController()
    {
        super(null, null, null, null, 0, 0, 0, 0, false, 0, 0, 0, null);
        throw new AssertionError();
    }

    public static Controller of(Controller real) throws Exception
    {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        sun.misc.Unsafe unsafe = (sun.misc.Unsafe) field.get(null);
        FixedController fixed = (FixedController) unsafe.allocateInstance(FixedController.class);
        for (Field each : Controller.class.getDeclaredFields())
        {
            if (Modifier.isStatic(each.getModifiers()))
                continue;
            long at = unsafe.objectFieldOffset(each);
            if (each.getType() == int.class)
                unsafe.putInt(fixed, at, unsafe.getInt(real, at));
            else if (each.getType() == long.class)
                unsafe.putLong(fixed, at, unsafe.getLong(real, at));
            else if (each.getType() == double.class)
                unsafe.putDouble(fixed, at, unsafe.getDouble(real, at));
            else if (each.getType() == boolean.class)
                unsafe.putBoolean(fixed, at, unsafe.getBoolean(real, at));
            else
                unsafe.putObject(fixed, at, unsafe.getObject(real, at));
        }
        return fixed;
    }

    @Override
    public Random random()
    {
        return new Random()
        {
            @Override
            public int nextInt(int bound)
            {
                return 0;
            }
        };
    }
}
