// The page unpacks it before its first plot.
declare const Plotly: any;
